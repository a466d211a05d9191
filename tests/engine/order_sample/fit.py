import torch
from torch import nn

from net.chain import Log, both

log = Log(torch.zeros(3, device="cuda"), 1.0)
net = nn.Linear(3, 3).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(100):
    loss = net(torch.rand(3, device="cuda")).sum()
    loss.backward()
    optimizer.step()
    both(log, net, loss)
log.total()
