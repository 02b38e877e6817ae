// Package {{ package.flat }} calls {{ (service.name or service.title)|doc }}, paid per call, through your own node.
{% if service.description %}
//
// {{ service.description|doc }}
{% endif %}
package {{ package.flat }}
