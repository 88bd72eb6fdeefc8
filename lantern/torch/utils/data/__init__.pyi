# Made by python -m tests.checkers.stubs, from what there is at run time.
from lantern.torch.tensor.tensor import Tensor
from lantern.torch.utils.data.datapipes import IterDataPipe as IterDataPipe
from lantern.torch.utils.data.datapipes import MapDataPipe as MapDataPipe
from lantern.torch.utils.data.datapipes import functional_datapipe as functional_datapipe
from lantern.torch.utils.data.dataset import ChainDataset as ChainDataset
from lantern.torch.utils.data.dataset import ConcatDataset as ConcatDataset
from lantern.torch.utils.data.dataset import Dataset as Dataset
from lantern.torch.utils.data.dataset import IterableDataset as IterableDataset
from lantern.torch.utils.data.dataset import StackDataset as StackDataset
from lantern.torch.utils.data.dataset import Subset as Subset
from lantern.torch.utils.data.dataset import TensorDataset as TensorDataset
from lantern.torch.utils.data.dataset import random_split as random_split
from lantern.torch.utils.data.loader import DataLoader as DataLoader
from lantern.torch.utils.data.sampler import BatchSampler as BatchSampler
from lantern.torch.utils.data.sampler import DistributedSampler as DistributedSampler
from lantern.torch.utils.data.sampler import RandomSampler as RandomSampler
from lantern.torch.utils.data.sampler import Sampler as Sampler
from lantern.torch.utils.data.sampler import SequentialSampler as SequentialSampler
from lantern.torch.utils.data.sampler import SubsetRandomSampler as SubsetRandomSampler
from lantern.torch.utils.data.sampler import WeightedRandomSampler as WeightedRandomSampler
from typing import Any

def default_collate(batch: Any) -> Tensor: ...
def default_convert(data: Any) -> Tensor: ...
def get_worker_info() -> Tensor: ...
