// about: a binary search whose interval stops shrinking
// launch: --kernel search --grid 1 --block 4 --arg "x=arange(16)" --arg "y=inout(zeros(4))"
// expect: timeout
__global__ void search(const int* x, int* y)
{
    int low = 0, high = 15, want = 100;
    while (low < high) {  // <- here
        int middle = (low + high) / 2;  // <- here
        if (x[middle] < want) low = middle; else high = middle;  // <- here
    }
    y[threadIdx.x] = low;
}
