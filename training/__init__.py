"""How the embedded model was made: problems, tokenizer, batches, the training itself, its report.

Not part of the package that is installed: run it from the root of the repository, as
`python -m training.train --out models/tiny --work .train`. What it shares with c4 (the decode
loop, the tasks, LLaDA's names and configuration) it takes from there.
"""
