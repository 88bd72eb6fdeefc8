# Made by python -m tests.checkers.stubs, from what there is at run time.
from lantern.torch.utils import benchmark as benchmark
from lantern.torch.utils import checkpoint as checkpoint
from lantern.torch.utils import data as data
from lantern.torch.utils import deterministic as deterministic
from lantern.torch.utils import dlpack as dlpack
from lantern.torch.utils import hooks as hooks
from lantern.torch.utils import model_zoo as model_zoo
from lantern.torch.utils import tensorboard as tensorboard
from lantern.torch.utils import weak as weak
from lantern.torch.utils.summaries import summary as summary


