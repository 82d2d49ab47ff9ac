"""How an answer is found in a text.

`answers` names the kinds of answers, `extractors` every way to read them. The careful readings are
`number`, `formula`, `letter` and `program`, one file each; the paper's are in `plain`. All of them
are pure functions of the text, which run at every denoising step on text that is still half noise:
they answer on any string and take time linear in its length.
"""
