"""Exchange: bring trajectories and runs in from other projects and the hub, and send them there.

`imports` reads the trajectories that other projects publish, and runs nothing of them; `export`
writes the step at which each token was unmasked, as serving engines exchange it; `hub` brings runs
to and from the hub. Only `.pt` files load torch.
"""
