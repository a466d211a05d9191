"""Images that are prepared on the CPU, in the process of the training."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    """Noise that is made smooth and turned."""

    def __len__(self):
        return 16 * 400

    def __getitem__(self, index):
        image = torch.rand(1, 3, 96, 96, generator=torch.Generator().manual_seed(index))
        image = nn.functional.interpolate(image, scale_factor=2, mode="bicubic")
        image = nn.functional.avg_pool2d(image, 5, 1, 2)[..., 32:160, 32:160]
        return image[0].flip(-1) if index % 2 else image[0], index % 10


def main():
    """Train."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(Images(), batch_size=16)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, 2), nn.ReLU(), nn.Conv2d(16, 32, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(1)
    )
    model = nn.Sequential(model, nn.Flatten(), nn.Linear(32, 10)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for images, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
