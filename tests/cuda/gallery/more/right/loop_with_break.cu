// why: each thread looks for its number and stops; the index has a value for those without one
// launch: --kernel find --grid 1 --block 8 --arg "x=arange(20)*3" --arg "want=array([0,3,4,57,58,9,12,100])" --arg "y=empty(8)"
// equals: y = np.array([0, 1, -1, 19, -1, 3, 4, -1])
__global__ void find(const int* x, const int* want, int* y)
{
    int at;
    bool found = false;
    for (int i = 0; i < 20; i++) {
        if (x[i] != want[threadIdx.x]) continue;
        at = i, found = true;
        break;
    }
    y[threadIdx.x] = found ? at : -1;
}
