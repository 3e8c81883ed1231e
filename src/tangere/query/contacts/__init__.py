"""The one record that crosses the rooms: contacts, their kind and their status."""

from tangere.query.contacts.record import Contacts, Kind, Status, contact_key

__all__ = [
    "Contacts",
    "Kind",
    "Status",
    "contact_key",
]
