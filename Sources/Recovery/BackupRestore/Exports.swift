// What is restored is a backup; its types come along.
@_exported public import Backup
