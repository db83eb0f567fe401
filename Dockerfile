# tinygraph with a compiler for its emulator, for trainings, kernels and the course.
#
#     make dist && docker build -t tinygraph .
#     docker run --rm -it -v "$PWD:/home/learner/runs" tinygraph train numba_cnn
#     docker run --rm -it -v "$PWD:/home/learner/runs" tinygraph check-kernel scale.cu --grid 4 --block 256 ...
FROM python:3.12-slim

COPY dist/*.whl /tmp/
RUN for wheel in /tmp/*.whl; do pip install --no-cache-dir "$wheel[data,plot,course,fast]"; done \
    && rm /tmp/*.whl \
    && useradd --create-home --uid 1000 learner \
    && install -d -o learner /home/learner/runs

USER learner
WORKDIR /home/learner/runs
ENTRYPOINT ["tinygraph"]
CMD ["doctor"]
