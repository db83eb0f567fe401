"""Reading CUDA sources as text: includes, macros, declarations, instances, operation counts."""
