"""Implicit-feedback recommender: two towers, embedding bags for the history, sampled negatives, HR@K and NDCG@K."""
import argparse
import os
import random
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.utils.data as data

os.environ.setdefault('TOKENIZERS_PARALLELISM', 'false')


class NCFData(data.Dataset):
	def __init__(self, features, num_item, train_set=None, num_ng=0, is_training=None):
		super(NCFData, self).__init__()
		self.features_ps = features
		self.num_item = num_item
		self.train_set = train_set
		self.num_ng = num_ng
		self.is_training = is_training
		self.labels = [0 for _ in range(len(features))]

	def ng_sample(self):
		assert self.is_training, 'no need to sample when testing'
		self.features_ng = []
		for u, _ in self.features_ps:
			for _ in range(self.num_ng):
				j = np.random.randint(self.num_item)
				while (u, j) in self.train_set:
					j = np.random.randint(self.num_item)
				self.features_ng.append([u, j])
		self.features_fill = self.features_ps + self.features_ng
		self.labels_fill = [1] * len(self.features_ps) + [0] * len(self.features_ng)

	def __len__(self):
		return (self.num_ng + 1) * len(self.labels)

	def __getitem__(self, idx):
		features = self.features_fill if self.is_training else self.features_ps
		labels = self.labels_fill if self.is_training else self.labels
		user, item = features[idx]
		return user, item, labels[idx]


class History:
	"""Items of each user in one flat tensor with offsets, as nn.EmbeddingBag wants it."""

	def __init__(self, interactions, num_user, max_len=20):
		self.items = [[] for _ in range(num_user)]
		for u, i in interactions:
			if len(self.items[u]) < max_len:
				self.items[u].append(i)

	def lookup(self, users):
		flat, offsets = [], []
		for u in users.tolist():
			offsets.append(len(flat))
			flat.extend(self.items[u])
		return torch.tensor(flat, dtype=torch.long), torch.tensor(offsets, dtype=torch.long)


class TwoTower(nn.Module):
	def __init__(self, user_num, item_num, factor_num, num_layers, dropout):
		super(TwoTower, self).__init__()
		self.embed_user = nn.Embedding(user_num, factor_num)
		self.embed_item = nn.Embedding(item_num, factor_num)
		self.history = nn.EmbeddingBag(item_num, factor_num, mode='mean')
		modules = []
		size = 3 * factor_num
		for _ in range(num_layers):
			modules.append(nn.Dropout(p=dropout))
			modules.append(nn.Linear(size, size // 2))
			modules.append(nn.ReLU())
			size = size // 2
		self.mlp = nn.Sequential(*modules)
		self.predict_layer = nn.Linear(size + factor_num, 1)
		self._init_weight_()

	def _init_weight_(self):
		for m in self.modules():
			if isinstance(m, (nn.Embedding, nn.EmbeddingBag)):
				nn.init.normal_(m.weight, std=0.01)
			elif isinstance(m, nn.Linear):
				nn.init.xavier_uniform_(m.weight)
				m.bias.data.zero_()

	def forward(self, user, item, flat, offsets):
		u, i = self.embed_user(user), self.embed_item(item)
		h = self.history(flat, offsets)
		out = torch.cat((u * i, self.mlp(torch.cat((u, i, h), -1))), -1)
		return self.predict_layer(out).view(-1)


def hit(gt_item, pred_items):
	return 1 if gt_item in pred_items else 0


def ndcg(gt_item, pred_items):
	if gt_item in pred_items:
		return np.reciprocal(np.log2(pred_items.index(gt_item) + 2))
	return 0


def metrics(model, test_loader, history, top_k, device):
	HR, NDCG = [], []
	for user, item, _ in test_loader:
		flat, offsets = history.lookup(user)
		user, item = user.to(device), item.to(device)
		predictions = model(user, item, flat.to(device), offsets.to(device))
		_, indices = torch.topk(predictions, top_k)
		recommends = torch.take(item, indices).cpu().numpy().tolist()
		gt_item = item[0].item()
		HR.append(hit(gt_item, recommends))
		NDCG.append(ndcg(gt_item, recommends))
	return np.mean(HR), np.mean(NDCG)


@torch.no_grad()
def full_ranking(model, history, train_set, num_user, num_item, device, k=10):
	"""Coverage and popularity of what is recommended among all the items."""
	items = torch.arange(num_item, device=device)
	seen = torch.zeros(num_user, num_item, dtype=torch.bool)
	rows, cols = zip(*train_set)
	seen[list(rows), list(cols)] = True
	seen = seen.to(device)
	counts = torch.zeros(num_item, device=device)
	for u in range(0, num_user, 10):
		flat, _ = history.lookup(torch.tensor([u] * 1))
		user = items.new_full((num_item,), u)
		bag = flat.to(device).repeat(num_item)
		offsets = torch.arange(0, num_item * len(flat), len(flat), device=device)
		scores = model(user, items, bag, offsets)
		scores[seen[u]] = -float('inf')
		counts[scores.topk(k).indices] += 1
	covered = (counts > 0).sum().item()
	top = counts.argsort(descending=True)[:5].tolist()
	return covered / num_item, top


def make_interactions(num_user, num_item, per_user, rng):
	taste, kind = rng.randn(num_user, 6), rng.randn(num_item, 6)
	logits = taste @ kind.T + rng.gumbel(size=(num_user, num_item))
	picked = np.argsort(-logits, axis=1)[:, :per_user + 1]
	train = [[u, int(i)] for u in range(num_user) for i in picked[u, 1:]]
	test = []
	for u in range(num_user):
		negatives = rng.choice(num_item, 50, replace=False)
		test += [[u, int(picked[u, 0])]] + [[u, int(i)] for i in negatives if i not in picked[u]][:39]
	return train, test


def main():
	parser = argparse.ArgumentParser()
	parser.add_argument("--lr", type=float, default=0.005, help="learning rate")
	parser.add_argument("--dropout", type=float, default=0.0, help="dropout rate")
	parser.add_argument("--batch_size", type=int, default=256, help="batch size for training")
	parser.add_argument("--epochs", type=int, default=4, help="training epoches")
	parser.add_argument("--top_k", type=int, default=10, help="compute metrics@top_k")
	parser.add_argument("--factor_num", type=int, default=16)
	parser.add_argument("--num_layers", type=int, default=2)
	parser.add_argument("--num_ng", type=int, default=3, help="sample negative items for training")
	args = parser.parse_args()
	random.seed(1)
	np.random.seed(1)
	torch.manual_seed(1)
	device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')

	user_num, item_num = 150, 200
	train_data, test_data = make_interactions(user_num, item_num, 15, np.random.RandomState(0))
	train_set = {(u, i) for u, i in train_data}
	history = History(train_data, user_num)
	train_dataset = NCFData(train_data, item_num, train_set, args.num_ng, True)
	test_dataset = NCFData(test_data, item_num, train_set, 0, False)
	train_loader = data.DataLoader(train_dataset, batch_size=args.batch_size, shuffle=True, num_workers=0)
	test_loader = data.DataLoader(test_dataset, batch_size=40, shuffle=False, num_workers=0)

	model = TwoTower(user_num, item_num, args.factor_num, args.num_layers, args.dropout)
	model.to(device)
	loss_function = nn.BCEWithLogitsLoss()
	optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
	best_hr, best_epoch = 0, -1
	for epoch in range(args.epochs):
		model.train()
		start_time = time.time()
		train_loader.dataset.ng_sample()
		running = torch.zeros(1, device=device)
		for user, item, label in train_loader:
			flat, offsets = history.lookup(user)
			user = user.to(device)
			item = item.to(device)
			label = label.float().to(device)
			model.zero_grad()
			prediction = model(user, item, flat.to(device), offsets.to(device))
			loss = loss_function(prediction, label)
			loss.backward()
			optimizer.step()
			running += loss.detach()
		model.eval()
		HR, NDCG = metrics(model, test_loader, history, args.top_k, device)
		elapsed_time = time.time() - start_time
		elapsed = time.strftime("%H: %M: %S", time.gmtime(elapsed_time))
		print("The time elapse of epoch {:03d} is: {}".format(epoch, elapsed))
		print("loss {:.4f}\tHR: {:.3f}\tNDCG: {:.3f}".format((running / len(train_loader)).item(), HR, NDCG))
		if HR > best_hr:
			best_hr, best_epoch = HR, epoch
	coverage, top = full_ranking(model, history, train_set, user_num, item_num, device)
	norm = F.cosine_similarity(model.embed_item.weight[0], model.embed_item.weight[1], dim=0)
	print("End. Best epoch {:03d}: HR = {:.3f}, coverage = {:.2f}, top = {}, cos = {:.3f}".format(
		best_epoch, best_hr, coverage, top, norm))


if __name__ == '__main__':
	main()
