import timm
import torch
model = timm.create_model('resnext101_32x8d', pretrained=True, num_classes=2)
opt_model = torch.compile(model, backend='cudagraphs')
output = opt_model(torch.randn(64,3,7,7))
