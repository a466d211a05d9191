import torch
torch._dynamo.reset()
def fn(x):
    a = torch.cos(x)
    b = torch.sin(a)
    return b
new_fn = torch.compile(fn, backend="cudagraphs")
input_tensor = torch.randn(10000).to(device="cuda:0")
a = new_fn(input_tensor)
