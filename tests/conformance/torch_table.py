def write(path, found): pass
