"""Run `train.py` without the packages that only draw clouds of points: `pointnet.py [ARGUMENTS]`."""

import runpy
import sys
from unittest.mock import MagicMock

for name in ("pytorch3d", "pytorch3d.renderer", "imageio", "cv2"):
    sys.modules[name] = MagicMock()
if __name__ == "__main__":
    runpy.run_path("train.py", run_name="__main__")
