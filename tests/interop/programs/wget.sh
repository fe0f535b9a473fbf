# It would call the file a form.
[ $# -lt 3 ] || set -- "$1" "$2" --body-file="$3" --header="Content-Type: application/octet-stream"
method=$1; url=$2; shift 2
wget -nv -S --content-on-error -O - --method="$method" --header="Authorization: Bearer $KEY" "$@" "$url" 2>wget.log
cat wget.log >&2
echo "status $(sed -n 's|^ *HTTP/1.1 \([0-9]*\).*|\1|p' wget.log | tail -n 1)" >&2
