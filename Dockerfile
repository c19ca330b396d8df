# m2bridge with Macaulay2 inside. Runs read-only, without privileges and without a network:
#   docker run --rm m2bridge singular-locus --d 2 --dp 1
FROM python:3.11-slim-bookworm AS build
WORKDIR /src
RUN python -m venv /opt/m2bridge
# Macaulay2 itself, from its wheel without the 1.6 GB of dependencies that it does not need to run
RUN /opt/m2bridge/bin/pip install --no-cache-dir --no-deps "passagemath-macaulay2==10.8.11"
COPY pyproject.toml README.md LICENSE CHANGELOG.md ./
COPY m2_templates m2_templates
COPY m2bridge m2bridge
RUN /opt/m2bridge/bin/pip install --no-cache-dir . \
 && /opt/m2bridge/bin/m2bridge doctor

FROM python:3.11-slim-bookworm
COPY --from=build /opt/m2bridge /opt/m2bridge
ENV PATH=/opt/m2bridge/bin:$PATH HOME=/tmp PYTHONDONTWRITEBYTECODE=1
USER 1000:1000
WORKDIR /tmp
ENTRYPOINT ["m2bridge"]
CMD ["--help"]
