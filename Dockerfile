# apron as an image: built where Rust is, run where nothing else is.
#
# A tag is whatever its registry says today. Whoever publishes an image says which bytes they mean,
# by digests that they have looked at:
#
#   digest() { docker buildx imagetools inspect --format '{{.Manifest.Digest}}' "$1"; }
#   docker build . -t apron \
#     --build-arg BUILD_IMAGE=docker.io/library/rust:1-bookworm@$(digest rust:1-bookworm) \
#     --build-arg RUN_IMAGE=docker.io/library/debian:bookworm-slim@$(digest debian:bookworm-slim)
ARG BUILD_IMAGE=docker.io/library/rust:1-bookworm
ARG RUN_IMAGE=docker.io/library/debian:bookworm-slim

FROM ${BUILD_IMAGE} AS build
RUN apt-get update && apt-get install -y --no-install-recommends cmake && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
ENV AWS_LC_SYS_USE_SYSTEM=0
# What `apron version -o json` tells of the source; nothing, unless it is said.
ARG APRON_COMMIT=
ARG APRON_SOURCE_TIME=
RUN cargo build --profile dist --locked -p apron

FROM ${RUN_IMAGE}
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates && rm -rf /var/lib/apt/lists/*
COPY --from=build /src/target/dist/apron /usr/local/bin/apron
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/apron"]
