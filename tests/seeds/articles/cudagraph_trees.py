import torch
import torch.jit
import torch.compiler

# モデルを定義する
class MyModel(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear1 = torch.nn.Linear(10, 20)
        self.linear2 = torch.nn.Linear(20, 1)

    def forward(self, x):
        x = self.linear1(x)
        x = torch.relu(x)
        x = self.linear2(x)
        return x

# モデルをスクリプト化する
model = MyModel()
script_model = torch.jit.script(model)

# モデルを最適化する
optimized_model = torch.compiler.optimize(script_model)

# 最適化されたモデルをロードする
loaded_model = torch.jit.load("optimized_model.pt")

# モデルを実行する
input = torch.randn(1, 10)
output = loaded_model(input)
print(output)
