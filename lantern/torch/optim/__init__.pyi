# Made by python -m tests.checkers.stubs, from what there is at run time.
from lantern.torch.optim import lr_scheduler as lr_scheduler
from lantern.torch.optim import swa_utils as swa_utils
from lantern.torch.optim.adam import Adam as Adam
from lantern.torch.optim.adam import AdamW as AdamW
from lantern.torch.optim.adam import Adamax as Adamax
from lantern.torch.optim.adam import NAdam as NAdam
from lantern.torch.optim.adam import RAdam as RAdam
from lantern.torch.optim.adaptive import Adadelta as Adadelta
from lantern.torch.optim.adaptive import Adagrad as Adagrad
from lantern.torch.optim.adaptive import RMSprop as RMSprop
from lantern.torch.optim.adaptive import SparseAdam as SparseAdam
from lantern.torch.optim.descent import ASGD as ASGD
from lantern.torch.optim.descent import Rprop as Rprop
from lantern.torch.optim.descent import SGD as SGD
from lantern.torch.optim.lbfgs import LBFGS as LBFGS
from lantern.torch.optim.matrices import Adafactor as Adafactor
from lantern.torch.optim.matrices import Muon as Muon
from lantern.torch.optim.optimizer import Optimizer as Optimizer


