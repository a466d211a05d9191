from . import layers

MADE = {}


def register(name):
    def keep(cls):
        MADE[name] = cls
        return cls

    return keep


def build(name):
    if name == "plain":
        return layers.Block()
    return MADE[name]()
