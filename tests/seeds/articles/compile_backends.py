torch.compiler.list_backends()
