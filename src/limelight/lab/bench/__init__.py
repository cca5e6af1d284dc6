"""Speed and memory, ours and our peers', as ratios measured in one run."""
