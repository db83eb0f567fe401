"""Training in several processes: the same program, started by `mpiexec -n 4 python train.py`.

    init, rank, world_size, local_rank, barrier, abort       who is here
    all_reduce, all_gather, all_to_all, broadcast, send, ...     what they say, on arrays
    functions                                                the same on Tensors, with gradients
    data_parallel                                            a batch in shards, the same bits
    Linear                                                   a layer that is split among the ranks

Without a launcher there is one process, the world of one, and all of it is the identity.  MPI is
used through mpi4py, an extra: see `init`.

Layers may need what ranks say to each other, as `nn.SyncBatchNorm` does: this room stands below nn,
but for the layer in it, which is loaded when it is first used.
"""

from typing import TYPE_CHECKING

from tinygraph.base.lazy import lazy as _lazy
from tinygraph.distributed import functions as functions
from tinygraph.distributed.collectives import all_gather as all_gather
from tinygraph.distributed.collectives import all_gather_object as all_gather_object
from tinygraph.distributed.collectives import all_gather_rows as all_gather_rows
from tinygraph.distributed.collectives import all_reduce as all_reduce
from tinygraph.distributed.collectives import all_to_all as all_to_all
from tinygraph.distributed.collectives import broadcast as broadcast
from tinygraph.distributed.collectives import broadcast_object as broadcast_object
from tinygraph.distributed.collectives import exchange as exchange
from tinygraph.distributed.collectives import recv as recv
from tinygraph.distributed.collectives import reduce_scatter as reduce_scatter
from tinygraph.distributed.collectives import send as send
from tinygraph.distributed.data_parallel import DataParallel as DataParallel
from tinygraph.distributed.data_parallel import data_parallel as data_parallel
from tinygraph.distributed.data_parallel import usual_shards as usual_shards
from tinygraph.distributed.first import arrays_from_first as arrays_from_first
from tinygraph.distributed.first import end_together as end_together
from tinygraph.distributed.first import from_first as from_first
from tinygraph.distributed.first import launched_by as launched_by
from tinygraph.distributed.first import leads as leads
from tinygraph.distributed.joined import abort as abort
from tinygraph.distributed.joined import barrier as barrier
from tinygraph.distributed.joined import finalize as finalize
from tinygraph.distributed.joined import init as init
from tinygraph.distributed.joined import is_initialized as is_initialized
from tinygraph.distributed.joined import local_rank as local_rank
from tinygraph.distributed.joined import rank as rank
from tinygraph.distributed.joined import world as world
from tinygraph.distributed.joined import world_size as world_size
from tinygraph.distributed.split import owner_of as owner_of
from tinygraph.distributed.world import World as World

if TYPE_CHECKING:
    from tinygraph.distributed.linear import Linear as Linear
else:
    __getattr__, __dir__ = _lazy(__name__, {"Linear": "tinygraph.distributed.linear"})
