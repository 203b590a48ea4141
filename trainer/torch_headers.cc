// Carries the precompiled torch/torch.h that other targets share (TorchPch.cmake).
