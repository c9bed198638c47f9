public import ArgumentParser
public import Lazaret

extension BackupCompression: ExpressibleByArgument {}
