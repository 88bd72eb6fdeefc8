"""What few trainings need: schedules and averages."""

from lantern.torch.optim import lr_scheduler as lr_scheduler
from lantern.torch.optim import swa_utils as swa_utils
