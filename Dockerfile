# apron as an image: built where Rust is, run where nothing else is.
FROM rust:1-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends cmake && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
ENV AWS_LC_SYS_USE_SYSTEM=0
RUN cargo build --release --locked -p apron

FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates && rm -rf /var/lib/apt/lists/*
COPY --from=build /src/target/release/apron /usr/local/bin/apron
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/apron"]
