# berthd and berth with the libraries they need, and nothing else: no shell, no package manager, no root.
#   docker build -t berth .
#   docker run --rm -v /run/berth:/run/berth berth        (the folder must be writable for user 65532)

# The workspace's rust-version (Cargo.toml) is the least that works here.
ARG RUST=docker.io/library/rust:1.90-slim-bookworm

FROM ${RUST} AS build
RUN apt-get update \
 && apt-get install -y --no-install-recommends gcc libc6-dev pkg-config libhwloc-dev libudev-dev \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/*
WORKDIR /src
COPY . .
# The caches are no part of the image, so the programs are copied out of the target folder in the same step.
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/src/target \
    cargo build --release --locked -p berthd -p berth \
 && install -D -t /out/usr/local/bin target/release/berthd target/release/berth
# `install` gives folders of the node to berthd's user, before berthd starts in a pod.
RUN scripts/image-root.sh /out /out/usr/local/bin/berthd /out/usr/local/bin/berth /usr/bin/install

FROM scratch
COPY --from=build /out/ /
COPY LICENSE-MIT LICENSE-APACHE /usr/share/doc/berth/
ENV PATH=/usr/local/bin:/usr/bin
# A number and not a name: Kubernetes can tell from it that this is not root.
USER 65532:65532
# Answered however busy berthd is, and SERVING from the first snapshot on. The chart has probes of its own.
HEALTHCHECK --interval=30s --timeout=5s --start-period=5s --retries=3 \
    CMD ["berth", "--server", "unix:/run/berth/berthd.sock", "health"]
ENTRYPOINT ["berthd"]
CMD ["--uds=/run/berth/berthd.sock"]
