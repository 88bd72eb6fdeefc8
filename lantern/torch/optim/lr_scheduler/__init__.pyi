# Made by python -m tests.checkers.stubs, from what there is at run time.
from lantern.torch.optim.lr_scheduler.composed import ChainedScheduler as ChainedScheduler
from lantern.torch.optim.lr_scheduler.composed import LambdaLR as LambdaLR
from lantern.torch.optim.lr_scheduler.composed import MultiplicativeLR as MultiplicativeLR
from lantern.torch.optim.lr_scheduler.composed import ReduceLROnPlateau as ReduceLROnPlateau
from lantern.torch.optim.lr_scheduler.composed import SequentialLR as SequentialLR
from lantern.torch.optim.lr_scheduler.cycles import CosineAnnealingLR as CosineAnnealingLR
from lantern.torch.optim.lr_scheduler.cycles import CosineAnnealingWarmRestarts as CosineAnnealingWarmRestarts
from lantern.torch.optim.lr_scheduler.cycles import CyclicLR as CyclicLR
from lantern.torch.optim.lr_scheduler.cycles import OneCycleLR as OneCycleLR
from lantern.torch.optim.lr_scheduler.schedules import ConstantLR as ConstantLR
from lantern.torch.optim.lr_scheduler.schedules import ExponentialLR as ExponentialLR
from lantern.torch.optim.lr_scheduler.schedules import LRScheduler as LRScheduler
from lantern.torch.optim.lr_scheduler.schedules import LinearLR as LinearLR
from lantern.torch.optim.lr_scheduler.schedules import MultiStepLR as MultiStepLR
from lantern.torch.optim.lr_scheduler.schedules import PolynomialLR as PolynomialLR
from lantern.torch.optim.lr_scheduler.schedules import StepLR as StepLR
from typing import Any as Any


