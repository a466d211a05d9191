import torch

def simple_model(x):
    y = x * 2
    z = y.sin()
    return z

# Move the model and input to the GPU
device = "cuda" if torch.cuda.is_available() else "cpu"
model = simple_model.to(device)
x = torch.randn(5, requires_grad=True).to(device)

# Create a graphed version of the model (warmup included)
num_warmup_iters = 3
with torch.cuda.stream(torch.cuda.Stream()):
    for _ in range(num_warmup_iters):
        model(x)
    graphed_model = torch.cuda.make_graphed_callables(model, sample_args=(x,))

# Use the graphed model for inference
y = graphed_model(x.clone())  # Use a clone to avoid modifying original input
print(y)

# You can also use the graphed model in a training loop with autograd:
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(10):
    optimizer.zero_grad()
    y = graphed_model(x)
    loss = (y - torch.ones_like(y)).sum()
    loss.backward()
    optimizer.step()
