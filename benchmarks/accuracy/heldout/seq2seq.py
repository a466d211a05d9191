"""Translation toy: reverse and shift digit strings with an attentive encoder-decoder.

Trains with teacher forcing, then decodes greedily and with a beam.
"""
import argparse
import math
import random
from typing import List

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim

PAD, SOS, EOS = 0, 1, 2
VOCAB = 16


class EncoderRNN(nn.Module):
    def __init__(self, input_size, hidden_size, dropout_p=0.1):
        super(EncoderRNN, self).__init__()
        self.hidden_size = hidden_size
        self.embedding = nn.Embedding(input_size, hidden_size, padding_idx=PAD)
        self.lstm = nn.LSTM(hidden_size, hidden_size, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(2 * hidden_size, hidden_size)
        self.dropout = nn.Dropout(dropout_p)

    def forward(self, src):
        embedded = self.dropout(self.embedding(src))
        output, (h, c) = self.lstm(embedded)
        h = torch.tanh(self.bridge(torch.cat([h[0], h[1]], dim=1))).unsqueeze(0)
        c = torch.tanh(self.bridge(torch.cat([c[0], c[1]], dim=1))).unsqueeze(0)
        return output, (h, c)


class Attention(nn.Module):
    def __init__(self, hidden_size):
        super(Attention, self).__init__()
        self.Wa = nn.Linear(hidden_size, hidden_size)
        self.Ua = nn.Linear(2 * hidden_size, hidden_size)
        self.Va = nn.Linear(hidden_size, 1)

    def forward(self, query, keys, mask):
        scores = self.Va(torch.tanh(self.Wa(query) + self.Ua(keys))).squeeze(2)
        scores = scores.masked_fill(mask, -1e4)
        weights = F.softmax(scores, dim=-1).unsqueeze(1)
        return torch.bmm(weights, keys), weights


class DecoderRNN(nn.Module):
    def __init__(self, hidden_size, output_size):
        super(DecoderRNN, self).__init__()
        self.embedding = nn.Embedding(output_size, hidden_size)
        self.attention = Attention(hidden_size)
        self.lstm = nn.LSTM(3 * hidden_size, hidden_size, batch_first=True)
        self.out = nn.Linear(hidden_size, output_size)

    def forward(self, token, state, memory, mask):
        emb = self.embedding(token)
        context, attn = self.attention(state[0].transpose(0, 1), memory, mask)
        output, state = self.lstm(torch.cat((emb, context), dim=2), state)
        return self.out(output), state, attn


class Seq2Seq(nn.Module):
    def __init__(self, encoder, decoder, device):
        super(Seq2Seq, self).__init__()
        self.encoder = encoder
        self.decoder = decoder
        self.device = device

    def forward(self, src, trg, teacher_forcing_ratio=0.5):
        batch_size, trg_len = trg.shape
        outputs = torch.zeros(batch_size, trg_len, VOCAB).to(self.device)
        mask = src == PAD
        memory, state = self.encoder(src)
        token = trg[:, :1]
        for t in range(1, trg_len):
            logits, state, _ = self.decoder(token, state, memory, mask)
            outputs[:, t] = logits[:, 0]
            teacher_force = random.random() < teacher_forcing_ratio
            token = trg[:, t : t + 1] if teacher_force else logits.argmax(2).detach()
        return outputs


class Hypothesis(object):
    def __init__(self, tokens, logp, state):
        self.tokens, self.logp, self.state = tokens, logp, state

    def extend(self, token, logp, state):
        return Hypothesis(self.tokens + [token], self.logp + logp, state)

    def score(self, alpha=0.7):
        return self.logp / math.pow(len(self.tokens), alpha)

    @property
    def finished(self):
        return self.tokens[-1] == EOS


@torch.no_grad()
def beam_search(model: Seq2Seq, src: torch.Tensor, beam_width: int = 4, max_len: int = 14) -> List[int]:
    memory, state = model.encoder(src)
    mask = src == PAD
    beams = [Hypothesis([SOS], 0.0, state)]
    complete = []
    for _ in range(max_len):
        candidates = []
        for hyp in beams:
            token = torch.tensor([[hyp.tokens[-1]]], device=model.device)
            logits, new_state, _ = model.decoder(token, hyp.state, memory, mask)
            logp = F.log_softmax(logits[0, 0], dim=-1)
            top_logp, top_ix = logp.topk(beam_width)
            for k in range(beam_width):
                candidates.append(hyp.extend(top_ix[k].item(), top_logp[k].item(), new_state))
        candidates.sort(key=lambda h: h.score(), reverse=True)
        beams = []
        for hyp in candidates[: 2 * beam_width]:
            (complete if hyp.finished else beams).append(hyp)
        beams = beams[:beam_width]
        if not beams or len(complete) >= beam_width:
            break
    best = max(complete or beams, key=lambda h: h.score())
    return best.tokens[1:]


@torch.no_grad()
def greedy(model, src, max_len=14):
    memory, state = model.encoder(src)
    mask = src == PAD
    token = torch.full((src.size(0), 1), SOS, dtype=torch.long, device=src.device)
    finished = torch.zeros(src.size(0), dtype=torch.bool, device=src.device)
    result = []
    for _ in range(max_len):
        logits, state, _ = model.decoder(token, state, memory, mask)
        token = logits.argmax(-1)
        result.append(token)
        finished |= token.squeeze(1) == EOS
        if finished.all():
            break
    return torch.cat(result, dim=1)


def make_batch(n, device):
    sources, targets = [], []
    longest = 0
    for _ in range(n):
        body = [random.randrange(3, VOCAB) for _ in range(random.randint(4, 10))]
        longest = max(longest, len(body))
        sources.append(body)
        targets.append([SOS] + [3 + (x - 2) % (VOCAB - 3) for x in reversed(body)] + [EOS])
    src = torch.LongTensor([s + [PAD] * (longest - len(s)) for s in sources]).to(device)
    trg = torch.LongTensor([t + [PAD] * (longest + 2 - len(t)) for t in targets]).to(device)
    return src, trg


def token_accuracy(pred, trg):
    n = min(pred.size(1), trg.size(1) - 1)
    gold = trg[:, 1 : n + 1]
    valid = gold != PAD
    correct = (pred[:, :n] == gold) & valid
    return (correct.sum().float() / valid.sum()).item()


def train_epoch(model, optimizer, criterion, steps, batch_size, clip, ratio):
    model.train()
    epoch_loss = 0
    for i in range(steps):
        src, trg = make_batch(batch_size, model.device)
        optimizer.zero_grad()
        output = model(src, trg, ratio)
        output_dim = output.shape[-1]
        loss = criterion(output[:, 1:].reshape(-1, output_dim), trg[:, 1:].reshape(-1))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        epoch_loss += loss.item()
    return epoch_loss / steps


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--epochs', type=int, default=4)
    parser.add_argument('--steps', type=int, default=30)
    parser.add_argument('--batch_size', type=int, default=48)
    parser.add_argument('--hidden', type=int, default=64)
    parser.add_argument('--clip', type=float, default=1.0)
    opt = parser.parse_args()
    random.seed(0)
    torch.manual_seed(0)
    device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')

    model = Seq2Seq(EncoderRNN(VOCAB, opt.hidden), DecoderRNN(opt.hidden, VOCAB), device).to(device)
    model.apply(lambda m: nn.init.xavier_uniform_(m.weight) if isinstance(m, nn.Linear) else None)
    optimizer = optim.Adam(model.parameters(), lr=3e-3)
    criterion = nn.CrossEntropyLoss(ignore_index=PAD)
    for epoch in range(opt.epochs):
        ratio = max(0.5, 1 - 0.15 * epoch)
        loss = train_epoch(model, optimizer, criterion, opt.steps, opt.batch_size, opt.clip, ratio)
        model.eval()
        src, trg = make_batch(32, device)
        acc = token_accuracy(greedy(model, src), trg)
        print('Epoch: {:02} | Train Loss: {:.3f} | Train PPL: {:7.3f} | Acc: {:.3f}'.format(
            epoch + 1, loss, math.exp(loss), acc))
    model.eval()
    src, trg = make_batch(4, device)
    for i in range(src.size(0)):
        sentence = src[i : i + 1][:, : (src[i] != PAD).sum()]
        hyp = beam_search(model, sentence)
        gold = [t for t in trg[i].tolist() if t not in (PAD, SOS)]
        print('src', sentence[0].tolist(), 'hyp', hyp, 'ok' if hyp == gold else 'gold %s' % gold)


if __name__ == '__main__':
    main()
