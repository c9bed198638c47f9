import Commands

LazaretCommand.start()
