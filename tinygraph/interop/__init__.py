"""Other libraries: ONNX, scikit-learn, DLPack, numpy's functions, TensorBoard, PyTorch's names."""
