print(cuda_tensor)
cuda_tensor.item()
tensor.cuda()
cuda_tensor.cpu()
cuda_tensor.nonzero()
if (cuda_tensor != 0).all():
    pass
