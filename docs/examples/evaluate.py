"""The accuracy of the classifier on held-out images."""

import torch


def evaluate(model, loader, device):
    correct = 0
    mistakes = []
    for images, labels in loader:
        images = images.to(device)
        labels = labels.to(device)
        predicted = model(images).argmax(dim=1)
        wrong = labels[predicted != labels]
        mistakes.extend(label.item() for label in wrong)
        correct += (predicted == labels).sum().item()
    print("most often wrong:", torch.tensor(mistakes).mode().values)
    return correct / len(loader.dataset)
