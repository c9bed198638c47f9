import ArgumentParser
public import StoreCoordination

extension BackupCompression: ExpressibleByArgument {}
