import argparse
import os
import tempfile
import time

import numpy as np
import torch
import torch.nn as nn
from layers import Forecaster
from torch import optim
from torch.utils.data import DataLoader, Dataset

fix_seed = 2021
torch.manual_seed(fix_seed)
np.random.seed(fix_seed)


class StandardScaler():
    def __init__(self):
        self.mean = 0.
        self.std = 1.

    def fit(self, data):
        self.mean = data.mean(0)
        self.std = data.std(0)

    def transform(self, data):
        mean = torch.from_numpy(self.mean).type_as(data).to(data.device) if torch.is_tensor(data) else self.mean
        std = torch.from_numpy(self.std).type_as(data).to(data.device) if torch.is_tensor(data) else self.std
        return (data - mean) / std

    def inverse_transform(self, data):
        mean = torch.from_numpy(self.mean).type_as(data).to(data.device) if torch.is_tensor(data) else self.mean
        std = torch.from_numpy(self.std).type_as(data).to(data.device) if torch.is_tensor(data) else self.std
        return (data * std) + mean


class Dataset_Load(Dataset):
    """Sums of seasons with a drift, for a few meters of a grid."""

    def __init__(self, flag, size, enc_in):
        self.seq_len, self.pred_len = size
        rng = np.random.RandomState(0)
        t = np.arange(900)[:, None]
        series = np.sin(2 * np.pi * t / 24 + rng.rand(enc_in) * 6) + 0.5 * np.sin(2 * np.pi * t / 168)
        series = series * (1 + rng.rand(enc_in)) + 0.001 * t + 0.1 * rng.randn(900, enc_in)
        border1 = {'train': 0, 'val': 600 - self.seq_len, 'test': 750 - self.seq_len}[flag]
        border2 = {'train': 600, 'val': 750, 'test': 900}[flag]
        self.scaler = StandardScaler()
        self.scaler.fit(series[:600])
        self.data = self.scaler.transform(series)[border1:border2]

    def __getitem__(self, index):
        s_end = index + self.seq_len
        return self.data[index:s_end], self.data[s_end:s_end + self.pred_len]

    def __len__(self):
        return len(self.data) - self.seq_len - self.pred_len + 1


class EarlyStopping:
    def __init__(self, patience=7, verbose=False, delta=0):
        self.patience = patience
        self.verbose = verbose
        self.counter = 0
        self.best_score = None
        self.early_stop = False
        self.val_loss_min = np.inf
        self.delta = delta

    def __call__(self, val_loss, model, path):
        score = -val_loss
        if self.best_score is None:
            self.best_score = score
            self.save_checkpoint(val_loss, model, path)
        elif score < self.best_score + self.delta:
            self.counter += 1
            print(f'EarlyStopping counter: {self.counter} out of {self.patience}')
            if self.counter >= self.patience:
                self.early_stop = True
        else:
            self.best_score = score
            self.save_checkpoint(val_loss, model, path)
            self.counter = 0

    def save_checkpoint(self, val_loss, model, path):
        if self.verbose:
            print(f'Validation loss decreased ({self.val_loss_min:.6f} --> {val_loss:.6f}).  Saving model ...')
        torch.save(model.state_dict(), os.path.join(path, 'checkpoint.pth'))
        self.val_loss_min = val_loss


def adjust_learning_rate(optimizer, epoch, args):
    lr_adjust = {epoch: args.learning_rate * (0.5 ** ((epoch - 1) // 1))}
    if epoch in lr_adjust:
        lr = lr_adjust[epoch]
        for param_group in optimizer.param_groups:
            param_group['lr'] = lr
        print(f'Updating learning rate to {lr}')


def metric(pred, true):
    mae = np.mean(np.abs(pred - true))
    mse = np.mean((pred - true) ** 2)
    rse = np.sqrt(np.sum((true - pred) ** 2)) / np.sqrt(np.sum((true - true.mean()) ** 2))
    return mae, mse, np.sqrt(mse), rse


class Exp_Basic:
    def __init__(self, args):
        self.args = args
        self.device = self._acquire_device()
        self.model = self._build_model().to(self.device)

    def _acquire_device(self):
        if self.args.use_gpu:
            device = torch.device(f'cuda:{self.args.gpu}')
            print(f'Use GPU: cuda:{self.args.gpu}')
        else:
            device = torch.device('cpu')
            print('Use CPU')
        return device


class Exp_Forecast(Exp_Basic):
    def _build_model(self):
        return Forecaster(self.args).float()

    def _get_data(self, flag):
        dataset = Dataset_Load(flag, (self.args.seq_len, self.args.pred_len), self.args.enc_in)
        return dataset, DataLoader(dataset, batch_size=self.args.batch_size, shuffle=flag == 'train', drop_last=True)

    def _process_one_batch(self, batch_x, batch_y):
        batch_x = batch_x.float().to(self.device)
        batch_y = batch_y.float()
        if self.args.use_amp:
            with torch.autocast(self.device.type, dtype=torch.bfloat16):
                outputs = self.model(batch_x)
        else:
            outputs = self.model(batch_x)
        return outputs.float(), batch_y.to(self.device)

    def vali(self, vali_loader, criterion):
        self.model.eval()
        total_loss = []
        with torch.no_grad():
            for batch_x, batch_y in vali_loader:
                pred, true = self._process_one_batch(batch_x, batch_y)
                loss = criterion(pred.detach().cpu(), true.detach().cpu())
                total_loss.append(loss)
        self.model.train()
        return np.average(total_loss)

    def train(self, path):
        _, train_loader = self._get_data('train')
        _, vali_loader = self._get_data('val')
        train_steps = len(train_loader)
        early_stopping = EarlyStopping(patience=self.args.patience, verbose=True)
        model_optim = optim.Adam(self.model.parameters(), lr=self.args.learning_rate)
        criterion = nn.MSELoss()
        time_now = time.time()
        for epoch in range(self.args.train_epochs):
            iter_count = 0
            train_loss = []
            self.model.train()
            epoch_time = time.time()
            for i, (batch_x, batch_y) in enumerate(train_loader):
                iter_count += 1
                model_optim.zero_grad()
                pred, true = self._process_one_batch(batch_x, batch_y)
                loss = criterion(pred, true)
                train_loss.append(loss.item())
                if (i + 1) % 10 == 0:
                    print(f"\titers: {i + 1}, epoch: {epoch + 1} | loss: {loss.item():.7f}")
                    speed = (time.time() - time_now) / iter_count
                    left_time = speed * ((self.args.train_epochs - epoch) * train_steps - i)
                    print(f'\tspeed: {speed:.4f}s/iter; left time: {left_time:.4f}s')
                    iter_count = 0
                    time_now = time.time()
                loss.backward()
                model_optim.step()
            print(f"Epoch: {epoch + 1} cost time: {time.time() - epoch_time:.2f}")
            train_loss = np.average(train_loss)
            vali_loss = self.vali(vali_loader, criterion)
            print(f"Epoch: {epoch + 1}, Steps: {train_steps} | Train: {train_loss:.5f} Vali: {vali_loss:.5f}")
            early_stopping(vali_loss, self.model, path)
            if early_stopping.early_stop:
                print("Early stopping")
                break
            adjust_learning_rate(model_optim, epoch + 1, self.args)
        self.model.load_state_dict(torch.load(os.path.join(path, 'checkpoint.pth')))
        return self.model

    def test(self, path, inverse=True):
        test_data, test_loader = self._get_data('test')
        self.model.eval()
        preds, trues = [], []
        with torch.no_grad():
            for batch_x, batch_y in test_loader:
                pred, true = self._process_one_batch(batch_x, batch_y)
                if inverse:
                    pred, true = test_data.scaler.inverse_transform(pred), test_data.scaler.inverse_transform(true)
                preds.append(pred.detach().cpu().numpy())
                trues.append(true.detach().cpu().numpy())
        preds, trues = np.concatenate(preds), np.concatenate(trues)
        print('test shape:', preds.shape, trues.shape)
        mae, mse, rmse, rse = metric(preds, trues)
        print(f'mse:{mse:.4f}, mae:{mae:.4f}, rmse:{rmse:.4f}, rse:{rse:.4f}')
        np.save(os.path.join(path, 'pred.npy'), preds)


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description='Long sequence forecasting')
    parser.add_argument('--attn', type=str, default='both', help='prob, full or both')
    parser.add_argument('--seq_len', type=int, default=48)
    parser.add_argument('--pred_len', type=int, default=12)
    parser.add_argument('--enc_in', type=int, default=5)
    parser.add_argument('--d_model', type=int, default=32)
    parser.add_argument('--n_heads', type=int, default=4)
    parser.add_argument('--e_layers', type=int, default=2)
    parser.add_argument('--train_epochs', type=int, default=3)
    parser.add_argument('--batch_size', type=int, default=32)
    parser.add_argument('--patience', type=int, default=2)
    parser.add_argument('--learning_rate', type=float, default=0.002)
    parser.add_argument('--use_amp', action='store_true', default=False)
    parser.add_argument('--gpu', type=int, default=0)
    args = parser.parse_args()
    args.use_gpu = torch.cuda.is_available()
    for attn in ('prob', 'full') if args.attn == 'both' else (args.attn,):
        args.attn = attn
        exp = Exp_Forecast(args)
        with tempfile.TemporaryDirectory() as path:
            print(f'>>>>>>>start training : {attn}>>>>>>>>>>>>>>>>>>>>>>>>>>')
            exp.train(path)
            exp.test(path)
        if args.use_gpu:
            torch.cuda.empty_cache()
