// about: a list push links the node with a plain load and store of the head
// launch: --kernel push --grid 2 --block 32 --arg "next=empty(64)" --arg "head=full(1,-1)"
// expect: race
extern "C" __global__ void push(int* next, int* head) {
  int node = blockIdx.x * blockDim.x + threadIdx.x;
  next[node] = *head;  // <- here
  *head = node;        // <- here
}
