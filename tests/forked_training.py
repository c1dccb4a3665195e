"""Programs of a few lines that train: forked from the process that has imported the training."""

from tests import forked_code

if __name__ == "__main__":
    forked_code.run()
