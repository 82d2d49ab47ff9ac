"""c4: record, replay and calibrate early exit in masked diffusion language models.

Importing c4 loads nothing: every name is looked up when it is first used, and only what decodes
loads torch.
"""
