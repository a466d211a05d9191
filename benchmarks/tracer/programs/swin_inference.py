"""timm's Swin Transformer: inference, features, and a look at each output."""

import timm
import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    model = timm.create_model("swin_tiny_patch4_window7_224", num_classes=50).to(DEVICE).eval()
    for step in range(6):
        images = torch.randn(4, 3, 224, 224).to(DEVICE)
        scores = model(images).softmax(-1)
        values, classes = scores.topk(5)
        for value, label in zip(values.cpu().numpy()[:, 0], classes[:, 0]):
            print(step, float(value), int(label))
        confident = scores[scores.max(1).values > 0.02]
        print(len(confident), model.forward_features(images).abs().max().item())


if __name__ == "__main__":
    main()
