"""Engine stage, outside the caller's process: the keeper. See ``__main__``; run as ``python -I -S`` of this directory."""
