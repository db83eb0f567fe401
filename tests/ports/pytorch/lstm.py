"""A language model of two LSTM layers."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class RNNModel(nn.Module):
    def __init__(self, ntoken, ninp, nhid, nlayers, dropout=0.0):
        super().__init__()
        self.ntoken = ntoken
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = nn.LSTM(ninp, nhid, nlayers, dropout=dropout)
        self.decoder = nn.Linear(nhid, ntoken)
        self.init_weights()
        self.nhid = nhid
        self.nlayers = nlayers

    def init_weights(self):
        initrange = 0.1
        nn.init.uniform_(self.encoder.weight, -initrange, initrange)
        nn.init.zeros_(self.decoder.bias)
        nn.init.uniform_(self.decoder.weight, -initrange, initrange)

    def forward(self, input, hidden):
        emb = self.drop(self.encoder(input))
        output, hidden = self.rnn(emb, hidden)
        output = self.drop(output)
        decoded = self.decoder(output)
        decoded = decoded.view(-1, self.ntoken)
        return F.log_softmax(decoded, dim=1), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        like = {"dtype": weight.dtype, "device": weight.device}
        shape = (self.nlayers, bsz, self.nhid)
        return torch.zeros(shape, **like), torch.zeros(shape, **like)


def training_loss(model, tokens, targets):
    """Two pieces of a text: the state goes on, its gradient does not."""
    criterion = nn.NLLLoss()
    hidden = model.init_hidden(tokens.size(1))
    total = 0.0
    for piece, target in zip(tokens.split(3), targets.split(3), strict=True):
        hidden = tuple(h.detach() for h in hidden)
        output, hidden = model(piece, hidden)
        total = total + criterion(output, target.view(-1))
    return total
