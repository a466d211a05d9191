# CTC speech recogniser on synthetic "utterances".
# Each character has a fixed spectral signature, repeated for a random duration.
import argparse
import logging
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset

logging.basicConfig(format='%(asctime)s %(levelname)s %(message)s', level=logging.INFO, datefmt='%H:%M:%S')

CHARS = "_ abcdefghijklmno'"
BLANK = 0
N_MELS = 40


class TextTransform:
    def __init__(self):
        self.char_map = {c: i for i, c in enumerate(CHARS)}
        self.index_map = dict(enumerate(CHARS))

    def text_to_int(self, text):
        return [self.char_map[c] for c in text]

    def int_to_text(self, labels):
        return ''.join(self.index_map[i] for i in labels)


class SyntheticSpeech(Dataset):
    def __init__(self, n, seed):
        rng = np.random.RandomState(1234)
        self.table = rng.randn(len(CHARS), N_MELS).astype('float32')
        rng = np.random.RandomState(seed)
        self.items = []
        for _ in range(n):
            length = rng.randint(3, 9)
            label = rng.randint(1, len(CHARS), length)
            durations = rng.randint(4, 8, length)
            spec = np.repeat(self.table[label], durations, axis=0)
            spec = spec + 0.3 * rng.randn(*spec.shape)
            self.items.append((spec.astype('float32'), label))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        spec, label = self.items[i]
        return torch.from_numpy(spec), torch.LongTensor(label)


def collate_fn(batch):
    batch = sorted(batch, key=lambda x: x[0].size(0), reverse=True)
    specs = [b[0] for b in batch]
    labels = [b[1] for b in batch]
    input_lengths = torch.IntTensor([s.size(0) for s in specs])
    label_lengths = torch.IntTensor([len(x) for x in labels])
    specs = pad_sequence(specs, batch_first=True)
    labels = pad_sequence(labels, batch_first=True)
    return specs, labels, input_lengths, label_lengths


class MaskConv(nn.Module):
    """Zeroes what lies beyond the length of each sample after every layer."""

    def __init__(self, seq_module):
        super().__init__()
        self.seq_module = seq_module

    def forward(self, x, lengths):
        for module in self.seq_module:
            x = module(x)
            mask = torch.zeros(x.size(), dtype=torch.bool)
            if x.is_cuda:
                mask = mask.cuda()
            for i, length in enumerate(lengths):
                length = length.item()
                if (mask[i].size(1) - length) > 0:
                    mask[i].narrow(1, length, mask[i].size(1) - length).fill_(1)
            x = x.masked_fill(mask, 0)
        return x, lengths


class Recognizer(nn.Module):
    def __init__(self, n_class, hidden=64, layers=2, dropout=0.1):
        super().__init__()
        self.conv = MaskConv(nn.Sequential(
            nn.Conv1d(N_MELS, hidden, 5, padding=2),
            nn.BatchNorm1d(hidden),
            nn.Hardtanh(0, 20),
        ))
        self.rnn = nn.GRU(hidden, hidden, num_layers=layers, batch_first=True, bidirectional=True, dropout=dropout)
        self.fc = nn.Linear(hidden * 2, n_class)

    def forward(self, x, lengths):
        lengths = lengths.cpu().int()
        x, output_lengths = self.conv(x.transpose(1, 2), lengths)
        x = x.transpose(1, 2).contiguous()
        packed = pack_padded_sequence(x, output_lengths, batch_first=True)
        packed, _ = self.rnn(packed)
        x, _ = pad_packed_sequence(packed, batch_first=True)
        return self.fc(x), output_lengths


def levenshtein(ref, hyp):
    row = list(range(len(hyp) + 1))
    for i, r in enumerate(ref, 1):
        prev, row[0] = row[0], i
        for j, h in enumerate(hyp, 1):
            prev, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, prev + (r != h))
    return row[-1]


def greedy_decoder(output, labels, label_lengths, lengths, transform):
    arg_maxes = torch.argmax(output, dim=2)
    decodes, targets = [], []
    for i, args in enumerate(arg_maxes):
        decode = []
        targets.append(transform.int_to_text(labels[i][:label_lengths[i]].tolist()))
        for j, index in enumerate(args[:lengths[i]]):
            if index != BLANK:
                if j != 0 and index == args[j - 1]:
                    continue
                decode.append(index.item())
        decodes.append(transform.int_to_text(decode))
    return decodes, targets


class GreedyCTC:
    """The faster one: one copy to the host for the batch."""

    def __init__(self, transform):
        self.transform = transform

    def __call__(self, log_probs, lengths):
        best = log_probs.argmax(-1).cpu().numpy()
        out = []
        for row, n in zip(best, lengths.tolist()):
            row = row[:n]
            keep = np.insert(row[1:] != row[:-1], 0, True)
            out.append(self.transform.int_to_text([int(c) for c in row[keep] if c != BLANK]))
        return out


def train(model, device, loader, criterion, optimizer, scheduler, epoch, log_interval):
    model.train()
    data_len = len(loader.dataset)
    total_loss = 0.
    for batch_idx, _data in enumerate(loader):
        spectrograms, labels, input_lengths, label_lengths = _data
        spectrograms, labels = spectrograms.to(device), labels.to(device)
        optimizer.zero_grad()
        output, out_lengths = model(spectrograms, input_lengths)
        output = F.log_softmax(output, dim=2).transpose(0, 1)
        loss = criterion(output, labels, out_lengths, label_lengths)
        if torch.isnan(loss) or torch.isinf(loss):
            logging.warning('skipping a batch without a finite loss')
            continue
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        scheduler.step()
        total_loss += loss.item()
        if batch_idx % log_interval == 0:
            logging.info('epoch %d [%d/%d] loss %.4f lr %.2e', epoch, batch_idx * len(spectrograms), data_len,
                         loss.item(), scheduler.get_last_lr()[0])
    return total_loss / len(loader)


def test(model, device, loader, criterion, transform):
    model.eval()
    test_loss, cer, exact = 0, [], 0
    fast = GreedyCTC(transform)
    with torch.no_grad():
        for i, (spectrograms, labels, input_lengths, label_lengths) in enumerate(loader):
            spectrograms, labels = spectrograms.to(device), labels.to(device)
            logits, out_lengths = model(spectrograms, input_lengths)
            log_probs = F.log_softmax(logits, dim=2)
            loss = criterion(log_probs.transpose(0, 1), labels, out_lengths, label_lengths)
            test_loss += loss.item() / len(loader)
            if i == 0:
                decoded, targets = greedy_decoder(log_probs, labels, label_lengths, out_lengths, transform)
            else:
                decoded = fast(log_probs, out_lengths)
                targets = [transform.int_to_text(x[:n]) for x, n in zip(labels.tolist(), label_lengths.tolist())]
            for ref, hyp in zip(targets, decoded):
                cer.append(levenshtein(ref, hyp) / len(ref))
                exact += ref == hyp
    logging.info('test loss %.4f CER %.3f exact %d/%d', test_loss, np.mean(cer), exact, len(cer))
    return np.mean(cer)


if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('--epochs', default=6, type=int)
    parser.add_argument('--batch-size', default=16, type=int)
    parser.add_argument('--lr', default=5e-3, type=float)
    hparams = vars(parser.parse_args())
    torch.manual_seed(7)
    use_cuda = torch.cuda.is_available()
    device = torch.device("cuda" if use_cuda else "cpu")
    kwargs = {'pin_memory': True} if use_cuda else {}
    train_loader = DataLoader(SyntheticSpeech(256, 1), batch_size=hparams['batch_size'], shuffle=True,
                              collate_fn=collate_fn, **kwargs)
    test_loader = DataLoader(SyntheticSpeech(48, 2), batch_size=hparams['batch_size'], collate_fn=collate_fn, **kwargs)
    model = Recognizer(len(CHARS)).to(device)
    logging.info('%d parameters', sum(p.numel() for p in model.parameters()))
    optimizer = torch.optim.AdamW(model.parameters(), hparams['lr'])
    criterion = nn.CTCLoss(blank=BLANK, zero_infinity=True).to(device)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=hparams['lr'], epochs=hparams['epochs'],
                                                    steps_per_epoch=len(train_loader))
    best = float('inf')
    for epoch in range(1, hparams['epochs'] + 1):
        tic = time.time()
        train(model, device, train_loader, criterion, optimizer, scheduler, epoch, log_interval=8)
        best = min(best, test(model, device, test_loader, criterion, TextTransform()))
        logging.info('epoch took %.1fs, best CER so far %.3f', time.time() - tic, best)
