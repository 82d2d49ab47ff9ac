"""Extractors: functions that find an answer in a text.

`answers` lists the kinds of answers, `extractors` every extractor by name. The careful readings are
`number`, `formula`, `letter` and `program`, one file each; the paper's are in `plain`. All of them
are pure functions of the text. They run at every denoising step on text that is still half noise,
so they accept any string and take time linear in its length.
"""
