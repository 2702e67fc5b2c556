"""The study of planted leaks: a pre-trained model is contaminated on purpose, and audited."""
