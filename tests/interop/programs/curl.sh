[ $# -lt 3 ] || set -- "$1" "$2" -T "$3"
[ -z "$EXPECT" ] || set -- "$@" -H "Expect: 100-continue"
method=$1; url=$2; shift 2
exec curl -sS -N -L -X "$method" -H "Authorization: Bearer $KEY" -w '%{stderr}status %{http_code}\n' "$@" "$url"
