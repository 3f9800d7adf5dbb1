"""Item response models: the model as a value, its one definition in Pyro, and the batched engine."""
