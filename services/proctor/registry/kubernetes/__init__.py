"""What a decision means for the workloads of a cluster: who serves the model, and what they are told."""
