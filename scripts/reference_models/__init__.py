"""How the reference models and the benchmark `proctor-facts` are made; run by `scripts/train_reference_models.py`."""
